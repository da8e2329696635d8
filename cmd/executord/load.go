package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/executord/executord/daemon/settings"
)

// load reads the settings. It prints and exits where help or the version are asked for.
func load() (*settings.Loaded, error) {
	loaded, err := settings.Load(os.Args[1:], os.Environ())
	switch {
	case errors.Is(err, settings.ErrHelp):
		err = settings.Help(os.Stdout)
	case errors.Is(err, settings.ErrVersion):
		_, err = fmt.Println("executord", version)
	default:
		return loaded, err
	}
	if err == nil {
		os.Exit(0)
	}
	return nil, err
}
