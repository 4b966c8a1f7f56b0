package snippets

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Class says what happens to a directive.
type Class string

// The classes of directives.
const (
	// Works is the class of directives that are interpreted.
	Works Class = "works"
	// NoEffect is the class of directives that have nothing to change here, such as sizes of buffers.
	NoEffect Class = "no effect"
	// LeftOut is the class of directives that are not interpreted, and keep no client out.
	LeftOut Class = "left out"
	// Guard is the class of directives that are not interpreted, and may keep clients out, change who responds, or
	// change what endpoints may trust.
	Guard Class = "guard"
	// Unreadable is the class of everything that nginx or this package refuses.
	Unreadable Class = "unreadable"
)

// The contexts in which this package reads directives.
const (
	inMain     = "main"
	inServer   = "server"
	inHTTP     = "http"
	inLocation = "location"
	inIf       = "if in location"
	// inLimitExcept is the block of limit_except.
	inLimitExcept = "limit_except"
)

// Row describes one directive of nginx.
type Row struct {
	Name string
	// Contexts are the blocks in which nginx allows the directive.
	Contexts []string
	// Args describes the number of arguments, such as "1 to 2". Block is true if the directive has a block.
	Args  string
	Block bool
	Class Class
	// Phase is the step of a request in which a directive of class Works takes effect. It is empty for other classes.
	Phase string
	// Doc says what the directive does if its class is Works. Otherwise it says why the directive has its class.
	Doc string
	// counts is what Args stands for.
	counts argCounts
}

// argCounts is the number of arguments that a directive takes: from least to most, where some numbers between them may
// be missing. A flag takes one argument, "on" or "off".
type argCounts struct {
	least, most int
	onlyEnds    bool
	flag        bool
}

// listed is the table of directives. Its first lines describe the format.
//
//go:embed directives.txt
var listed string

// Table returns the rows of all directives, in the order of the documentation.
var Table = sync.OnceValue(func() []Row { return readTable(listed) })

// byName returns the rows of all directives by their names.
var byName = sync.OnceValue(func() map[string]*Row {
	rows := Table()
	all := make(map[string]*Row, len(rows))
	for i := range rows {
		all[rows[i].Name] = &rows[i]
	}
	return all
})

// readTable parses the table of directives. It panics if the table is not valid.
func readTable(text string) (rows []Row) {
	var class Class
	var title string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "", strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			name, rest, _ := strings.Cut(line[1:], "] ")
			class, title = Class(name), rest
		default:
			rows = append(rows, readRow(line, class, title))
		}
	}
	return rows
}

func readRow(line string, class Class, title string) Row {
	columns := strings.Split(line, " | ")
	args, block := strings.CutSuffix(columns[2], " {}")
	row := Row{
		Name: columns[0], Contexts: strings.Split(columns[1], ", "), Args: args, Block: block, Class: class,
		Doc: title, counts: readCounts(args),
	}
	if class == Works {
		row.Phase, row.Doc = title, columns[3]
	}
	return row
}

// maxArgs stands for an unlimited number of arguments.
const maxArgs = 1 << 30

func readCounts(text string) argCounts {
	switch text {
	case "on or off":
		return argCounts{least: 1, most: 1, flag: true}
	case "any":
		return argCounts{most: maxArgs}
	case "a condition":
		return argCounts{least: 1, most: maxArgs}
	}
	words := strings.Fields(text)
	least := number(words[0])
	switch {
	case len(words) == 1:
		return argCounts{least: least, most: least}
	case words[2] == "more":
		return argCounts{least: least, most: maxArgs}
	}
	return argCounts{least: least, most: number(words[2]), onlyEnds: words[1] == "or"}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(fmt.Sprintf("the table of directives contains %q in place of a number", text))
	}
	return n
}

// accept reports whether a directive may have these arguments.
func (c *argCounts) accept(args []string) bool {
	n := len(args)
	switch {
	case n < c.least || n > c.most || c.onlyEnds && n != c.least && n != c.most:
		return false
	case c.flag:
		return strings.EqualFold(args[0], "on") || strings.EqualFold(args[0], "off")
	}
	return true
}

// snippetOf maps the contexts to the names of the snippets for them.
var snippetOf = map[string]string{
	inHTTP: "http-snippet", inServer: "server-snippet", inLocation: "configuration-snippet",
}

// places describes where nginx allows the directive, with the names of the snippets.
func (r *Row) places() string {
	all := slices.Clone(r.Contexts)
	for i, context := range all {
		if name := snippetOf[context]; name != "" {
			all[i] += " (" + name + ")"
		}
	}
	return strings.Join(all, ", ")
}

// allowedIn reports whether nginx allows the directive in a context.
func (r *Row) allowedIn(context string) bool { return slices.Contains(r.Contexts, context) }
