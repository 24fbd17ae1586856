"""Export: labels and rankers for other tools, a file for each of them; and statements for warehouses."""
