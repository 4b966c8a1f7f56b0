// Package arch checks the structure of the module: the import order of its folders, which the tables in folders_test.go
// define, the width and wording of comments and documentation, and the functions that CONTRIBUTING.md names. It
// contains only tests. A new package in an existing folder needs no entry in the tables.
package arch
