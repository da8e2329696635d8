// Package cmd holds no code: the three mains are in its folders. Its tests keep what is of no one
// package: the import arrows, and that pages tell of what is there.
package cmd
