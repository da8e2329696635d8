// Package cmd holds no code: the three mains are in its folders. Its tests keep the import arrows of the project.
package cmd
