"""The words about what is in the database already: list, show, delete, export, compare, check."""
