package caddyfile

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/k8singress/k8singress/internal/model/option"
)

// parseBlock parses the block of an option, which may be missing. known maps the names of the lines in the block to
// their parsers, which store the arguments of a line in value. Each line may occur once; remedy says what to write in
// place of the second one.
func parseBlock[T any](l *line, value *T, known map[string]func(*T, []string) error, remedy string) error {
	block, given := caddyfile.NewDispenser(l.tokens), option.Given{}
	block.Next()
	block.RemainingArgs()
	for block.NextBlock(0) {
		name := block.Val()
		parse, err := option.Select(given, known, "the block", name, remedy)
		if err != nil {
			return err
		}
		if err := parse(value, block.RemainingArgs()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// removeOne is the remedy for a line that occurs twice in a block and takes a single value.
const removeOne = "remove one of the two lines"

// names returns the parser of a line that takes at least one name.
func names[T any](field func(*T) *[]string, valid check) func(*T, []string) error {
	return func(value *T, args []string) error {
		if len(args) == 0 {
			return errors.New("it needs an argument: write at least one name, or remove the line")
		}
		return many(func(*draft) *[]string { return field(value) }, valid)(nil, &line{args: args})
	}
}

// define adds a chain to chains. content is what the block of a chain contains, and parse parses the block.
func define(chains *map[string]json.RawMessage, chain, content string, parse func() (json.RawMessage, error)) error {
	if err := chainName(chain); err != nil {
		return err
	}
	if _, ok := (*chains)[chain]; ok {
		return fmt.Errorf("%s is defined twice: put all of its %s into one block, or rename one of the two chains",
			chain, content)
	}
	routes, err := parse()
	if err != nil {
		return fmt.Errorf("%s: %w", chain, err)
	}
	if *chains == nil {
		*chains = map[string]json.RawMessage{}
	}
	(*chains)[chain] = routes
	return nil
}
