"""Export: labels and rankers for other tools, and statements for warehouses."""
