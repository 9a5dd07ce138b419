"""What people can ask of the site about their own data: a copy of it, and that it is deleted."""
