// Package arch checks the structure of the module: the import order of its folders, which the tables in folders_test.go
// give, and the width and wording of its text. It contains only tests. A new package in one of the folders needs no
// row.
package arch
