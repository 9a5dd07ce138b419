"""What a person has chosen for the pages of runs: charts, and columns of the list."""
