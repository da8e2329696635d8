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
	case err == nil:
		return loaded, export(loaded.Variables())
	}
	if err == nil {
		os.Exit(0)
	}
	return nil, err
}

// export puts variables into the environment, for those who read them there, unless they are set.
func export(variables map[string]string) error {
	for name, value := range variables {
		if _, set := os.LookupEnv(name); set {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}
