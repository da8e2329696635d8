package main

import (
	"embed"
)

//go:embed completion
var scripts embed.FS

// completionCommand is executorctl completion.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is shown below the flags.
func (completionCommand) Help() string {
	return "In bash and zsh, source <(executorctl completion SHELL) completes from then on; in fish, executorctl completion fish | source. " +
		"The first lines of each script say where it belongs for all users. Names of workers and executions are asked of the service."
}

// Run prints the script.
func (c *completionCommand) Run(w *world) error {
	text, err := scripts.ReadFile("completion/" + c.Shell)
	if err == nil {
		_, err = w.out.Write(text)
	}
	return err
}
