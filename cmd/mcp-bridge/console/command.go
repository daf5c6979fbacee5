package console

import "github.com/spf13/cobra"

// Command returns the command sandbox, by which a user works in sandboxes.
func Command(user *Client) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Look into the sandboxes of bridges that are running",
		Long: "Work on the sandboxes of your bridges that are running: docs/sandboxes.md.\n" +
			"Each bridge listens on a socket that only you can reach.",
	}
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "List the sandboxes, the last used first of each bridge, then saved ones",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return user.List(cmd.Context(), asJSON) },
	}
	list.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	shell := &cobra.Command{
		Use: "shell ID", Short: "Run shell commands in a sandbox, one for each line of standard input",
		Long: "Run shell commands in a sandbox, one for each line of standard input, up to exit or its end.\n" +
			"The directory that cd chooses is kept from line to line; variables of the shell are not.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return user.Shell(cmd.Context(), args[0]) },
	}
	python := &cobra.Command{
		Use: "python ID", Short: "Run Python in a sandbox, with its variables, line by line from standard input",
		Long: "Run Python in a sandbox, with its variables, line by line from standard input, up to exit() " +
			"or its end.\n" +
			"An indented block ends with an empty line. Each statement is a call like the model's, which sees " +
			"what it\n" +
			"changes; it can call no tools.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return user.Python(cmd.Context(), args[0]) },
	}
	copyFile := &cobra.Command{
		Use: "cp FROM TO", Short: "Copy a file into a sandbox or out of it; one of the two is ID:PATH",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return user.Copy(cmd.Context(), args[0], args[1])
		},
	}
	kill := &cobra.Command{
		Use: "kill ID", Short: "End a sandbox, or remove a saved one, with its files", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return user.Kill(cmd.Context(), args[0]) },
	}
	cmd.AddCommand(list, shell, python, copyFile, kill)
	return cmd
}
