"""The command line: arguments in, exit codes out. The commands call ``irscope.api``; they have no logic of their own."""
