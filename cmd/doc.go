// Package cmd holds no code: the mains are in its folders, three that operators get and wpt, a tool of the project. Its
// tests keep the import arrows of the project.
package cmd
