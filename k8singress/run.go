package k8singress

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/control/flags"
	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/suggest"
	"github.com/k8singress/k8singress/internal/process/logs"
)

// flagged is a Caddy config adapter that converts a Caddyfile and then applies the flags of the command line.
type flagged struct {
	given flags.Given
}

const flaggedName = "k8singress_flags"

// commandLine is the only instance of the adapter. It is global because Caddy looks up adapters by name, and uses the
// adapter again when it reloads the configuration. It is registered only by the command `caddy k8singress run`, so that
// `caddy list-modules` does not list it.
var commandLine flagged

// Adapt converts a Caddyfile to Caddy JSON and applies the flags of the command line. The Caddyfile adapter gets the
// options with the flags, so that Caddy's global options, such as servers, apply to the addresses in the flags.
func (f *flagged) Adapt(body []byte, options map[string]any) ([]byte, []caddyconfig.Warning, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{\n}\n")
	}
	var run *applied
	withFlags := maps.Clone(options)
	if withFlags == nil {
		withFlags = map[string]any{}
	}
	withFlags[structure.CompleteOption] = structure.Complete(func(c settings.Config, _ bool) (settings.Config, error) {
		var err error
		run, err = f.apply(c)
		return run.Config.WithoutDefaults(), err
	})
	adapted, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt(body, withFlags)
	if run != nil {
		warnings = append(warnings, run.warnings...)
	}
	if err != nil {
		return nil, warnings, err
	}
	var config map[string]any
	if err := json.Unmarshal(adapted, &config); err != nil {
		return nil, warnings, fmt.Errorf("decoding the adapted configuration: %w", err)
	}
	if run == nil {
		// The adapter of this version of Caddy could not be wrapped.
		if run, err = f.addStructure(config); err != nil {
			return nil, append(warnings, run.warnings...), err
		}
		warnings = append(warnings, run.warnings...)
	}
	if run.Debug {
		within(config, "logging", "logs", "default")["level"] = "DEBUG"
	}
	adapted, err = json.Marshal(config)
	return adapted, warnings, err
}

// applied holds the options that result from the flags, and a warning for each flag that has no effect.
type applied struct {
	flags.Settings
	warnings []caddyconfig.Warning
}

// apply applies the flags of the command line to the options in the Caddyfile. The result is not nil, also if there is
// an error.
func (f *flagged) apply(options settings.Config) (*applied, error) {
	s, problems := flags.Apply(options, f.given)
	run := &applied{Settings: s}
	var refused []error
	for _, p := range problems {
		if p.Severity == report.Error {
			refused = append(refused, fmt.Errorf("%s: %s", p.Field, p.Message))
			continue
		}
		run.warnings = append(run.warnings,
			caddyconfig.Warning{File: "command line", Directive: p.Field, Message: p.Message})
	}
	if len(refused) > 0 {
		return run, errors.Join(refused...)
	}
	if err := s.Config.Check(); err != nil {
		return run, err
	}
	return run, structure.CheckAddresses(s.Config)
}

// addStructure adds the app with the options that result from the flags, and its servers, to a configuration.
func (f *flagged) addStructure(config map[string]any) (*applied, error) {
	options, err := optionsIn(config)
	if err != nil {
		return new(applied), err
	}
	run, err := f.apply(options)
	if err != nil {
		return run, err
	}
	within(config, "apps")["k8singress"] = structure.Tree(run.Config.WithoutDefaults())
	return run, structure.Merge(config, run.Config)
}

// within returns the JSON object at a path in a configuration. Missing objects on the path are created.
func within(config map[string]any, path ...string) map[string]any {
	for _, name := range path {
		next, ok := config[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			config[name] = next
		}
		config = next
	}
	return config
}

// optionsIn returns the options of the k8singress app in a configuration.
func optionsIn(config map[string]any) (options settings.Config, err error) {
	apps, _ := config["apps"].(map[string]any)
	raw, err := json.Marshal(apps["k8singress"])
	if err == nil {
		err = json.Unmarshal(raw, &options)
	}
	return options, err
}

// flag implements pflag.Value for a command-line flag of ingress-nginx. Set adds the value to given, under the flag's
// name.
type flag struct {
	row   *flags.Row
	given flags.Given
}

func (f flag) String() string { return "" }

func (f flag) Set(value string) error {
	f.given[f.row.Name] = append(f.given[f.row.Name], value)
	return nil
}

func (f flag) Type() string { return flags.FormatOf(f.row).Type }

func runCommand() *cobra.Command {
	given, config := flags.Given{}, ""
	cmd := &cobra.Command{
		Use:   "run [--config CADDYFILE] [FLAGS OF INGRESS-NGINX]",
		Short: "Runs the controller with the command line of ingress-nginx",
		Long: "Runs the controller with the command line of ingress-nginx. docs/flags.md describes the flags. A\n" +
			"Caddyfile can set options for which ingress-nginx has no flag; if both set an option, the flag wins.\n" +
			"A binary with package ingressnginx accepts the flags without the words k8singress run if its name is\n" +
			"nginx-ingress-controller. The binary of the image contains this package.",
		Args: onlyFlags,
	}
	addFlags(cmd.Flags(), given)
	cmd.Flags().StringVarP(&config, "config", "c", os.DevNull, "Caddyfile with additional options")
	showVersion := cmd.Flags().Bool("version", false, "print the version and exit")
	cmd.SetFlagErrorFunc(unknownFlag)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *showVersion {
			_, full := caddy.Version()
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "k8singress %s, with Caddy %s\n", ownVersion(), full)
			return err
		}
		cmd.SilenceUsage = true
		commandLine.given = given
		caddyconfig.RegisterAdapter(flaggedName, &commandLine)
		return runCaddy(cmd.Root(), config)
	}
	return cmd
}

// version is the version of this release. It is set at build time, and empty in other builds.
var version string

// ownModule is the path of this module.
const ownModule = "github.com/k8singress/k8singress"

// ownVersion returns the version of k8singress: the release version or, if this is not a release build, the module
// version in the build info. In binaries built with xcaddy, this module is a dependency; otherwise it is the main
// module.
func ownVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown version)"
	}
	for _, m := range info.Deps {
		if m.Path == ownModule {
			return m.Version
		}
	}
	return info.Main.Version
}

func addFlags(set *pflag.FlagSet, given flags.Given) {
	for i := range flags.Table {
		row := &flags.Table[i]
		short := ""
		if len(row.Name) == 1 {
			short = row.Name
		}
		added := set.VarPF(flag{row, given}, row.Name, short, plainText(row.Doc+row.Ignored))
		if flags.Boolean(row) {
			added.NoOptDefVal = "true"
		}
	}
}

// link matches a link to a page of the documentation.
var link = regexp.MustCompile(`\[([^\]]+)\]\(([^)]+)\)`)

// plainText converts the Markdown of a description to plain text. The help must contain no backticks, because package
// pflag takes the text between two of them as the type of the flag.
func plainText(markdown string) string {
	return strings.ReplaceAll(link.ReplaceAllString(markdown, "$1 (docs/$2)"), "`", "")
}

// unknownFlag adds a suggestion to the error for an unknown flag: the flag with the most similar name.
func unknownFlag(_ *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	name := strings.TrimLeft(unknown.GetSpecifiedName(), "-")
	return fmt.Errorf("there is no flag --%s%s", name, suggest.Hint(name, flags.Table.Names()))
}

// runCaddy runs the command `caddy run` with the given configuration file. The adapter commandLine applies the flags.
func runCaddy(root *cobra.Command, config string) error {
	run, _, err := root.Find([]string{"run"})
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"config": config, "adapter": flaggedName} {
		if err := run.Flags().Set(name, value); err != nil {
			return err
		}
	}
	logs.Logger("").Info("using the command line of ingress-nginx",
		zap.Strings("flags", sortedNames(commandLine.given)))
	return run.RunE(run, nil)
}

func sortedNames(given flags.Given) []string {
	names := make([]string, 0, len(given))
	for name := range given {
		names = append(names, "--"+name)
	}
	slices.Sort(names)
	return names
}

// onlyFlags returns an error if the command line has an argument that is no flag. As in ingress-nginx, empty arguments
// are left out. ingress-nginx leaves out all others, too, so that "--enable-ssl-passthrough false" means true there.
func onlyFlags(_ *cobra.Command, args []string) error {
	for _, arg := range args {
		if strings.TrimSpace(arg) != "" {
			return fmt.Errorf("the argument %.64q is not a flag: write each flag and its value as one argument, such "+
				"as --enable-metrics=false", arg)
		}
	}
	return nil
}
