"""Gates: rules with a number or a pattern of the user's. They look only when they are asked, by an option or by the project's file."""
