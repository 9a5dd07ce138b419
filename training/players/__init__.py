"""Who can sit at a seat: model, random and scripted players."""
