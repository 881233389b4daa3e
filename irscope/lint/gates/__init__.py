"""Gates: rules with a number or a pattern of the user's. They run only if an option or the project's file enables them."""
