package main

import "testing"

// TestDifference checks which changes of a file count as changes of its code.
func TestDifference(t *testing.T) {
	const before = "package p\n\n// F returns one.\nfunc F() int { return 1 }\n"
	for _, c := range []struct {
		name, after string
		differs     bool
	}{
		{"another comment",
			"package p\n\n// F returns the first number.\nfunc F() int {\n\t// It is one.\n\treturn 1\n}\n", false},
		{"another layout", "package p\n\nfunc F() int {\n\treturn 1 }\n", false},
		{"another number", "package p\n\nfunc F() int { return 2 }\n", true},
		{"another name", "package p\n\nfunc G() int { return 1 }\n", true},
		{"one more statement", before + "\nvar x int\n", true},
		{"one statement less", "package p\n", true},
		{"another build constraint", "//go:build linux\n\n" + before, true},
		{"another exception for the linter",
			"package p\n\nfunc F() int { return 1 } //nolint:revive // it is short\n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, err := tokens("p.go", []byte(before))
			if err != nil {
				t.Fatal(err)
			}
			changed, err := tokens("p.go", []byte(c.after))
			if err != nil {
				t.Fatal(err)
			}
			if err := difference("p.go", old, changed); (err != nil) != c.differs {
				t.Errorf("the difference is %v, want one: %v", err, c.differs)
			}
		})
	}
}
