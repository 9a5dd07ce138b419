"""The table's pages: lobby, new table, the table itself, host's controls, replay."""
