"""What an episode earned: outcome, judge, format."""
