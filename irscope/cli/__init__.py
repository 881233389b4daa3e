"""The command line: arguments in, exit codes out. What a command does stands in the rooms above, not here."""
