"""The methods: each one small file that turns scored episodes into credit."""
