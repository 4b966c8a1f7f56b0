package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Image is the program that is run for a container image.
type Image struct {
	// Program is an absolute path.
	Program string
	// Arguments are for containers that have neither a command nor args.
	Arguments []string
}

// Images maps image names to programs, by rules. The name of a rule is a repository, or the last parts of one: "echo" is
// for "registry.example/team/echo:v1" too, unless a longer rule is.
type Images struct{ rules map[string]Image }

// NewImages reads rules of the form NAME=PROGRAM [ARGUMENT ...].
func NewImages(rules []string) (*Images, error) {
	images := &Images{rules: map[string]Image{}}
	for _, rule := range rules {
		if err := addRule(images.rules, rule); err != nil {
			return nil, err
		}
	}
	return images, nil
}

// Find returns the program for an image reference.
func (i *Images) Find(reference string) (Image, error) {
	for name, more := repository(reference), true; more; _, name, more = strings.Cut(name, "/") {
		if image, ok := i.rules[name]; ok {
			_, err := os.Stat(image.Program)
			return image, err
		}
	}
	return Image{}, fmt.Errorf("there is no program for the image %q: name one with --image", reference)
}

func addRule(rules map[string]Image, rule string) error {
	name, command, _ := strings.Cut(rule, "=")
	words := strings.Fields(command)
	if name == "" || len(words) == 0 {
		return fmt.Errorf("image rule %q is not NAME=PROGRAM", rule)
	}
	program, err := filepath.Abs(words[0])
	if err != nil {
		return err
	}
	rules[repository(name)] = Image{Program: program, Arguments: words[1:]}
	return nil
}

// repository cuts digest and tag off. A colon that a slash follows is a registry's port.
func repository(reference string) string {
	reference, _, _ = strings.Cut(reference, "@")
	if colon := strings.LastIndexByte(reference, ':'); colon > strings.LastIndexByte(reference, '/') {
		reference = reference[:colon]
	}
	return reference
}
