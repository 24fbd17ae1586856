"""Export: labels and rankers for other tools, one module per tool; and SQL statements for warehouses."""
