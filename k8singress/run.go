package k8singress

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/flags"
	"github.com/k8singress/k8singress/internal/logs"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/settings"
	"github.com/k8singress/k8singress/internal/structure"
	"github.com/k8singress/k8singress/internal/suggest"
)

// The names of the programs in the image of ingress-nginx that its pods call: by nginxName, Caddy takes its command line. waitName is the
// hook before the end of a pod. Here the process drains by itself, so there is nothing to wait for.
const (
	nginxName = "nginx-ingress-controller"
	waitName  = "wait-shutdown"
)

// asNginx returns the command line of Caddy that one of ingress-nginx stands for: one that begins with the name of its program, or has it
// as the first argument, where the entrypoint of an image stands before it. Every other one stays as it is.
func asNginx(args []string) []string {
	for i := range min(len(args), 2) {
		if filepath.Base(args[i]) == nginxName {
			return append([]string{args[0], "k8singress", "run"}, args[i+1:]...)
		}
	}
	return args
}

// flagged is the adapter of a Caddyfile, with the flags of a command line on top.
type flagged struct {
	given map[string]string
}

const flaggedName = "k8singress_flags"

// commandLine is what the one adapter reads, because Caddy knows adapters by name and calls it again for a reload.
var commandLine flagged

func init() {
	caddyconfig.RegisterAdapter(flaggedName, &commandLine)
	if filepath.Base(os.Args[0]) == waitName {
		os.Exit(0)
	}
	os.Args = asNginx(os.Args)
}

// Adapt returns Caddy's JSON.
func (f *flagged) Adapt(body []byte, options map[string]any) ([]byte, []caddyconfig.Warning, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{\n}\n")
	}
	adapted, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt(body, options)
	if err != nil {
		return nil, warnings, err
	}
	var config map[string]any
	if err := json.Unmarshal(adapted, &config); err != nil {
		return nil, warnings, fmt.Errorf("decoding the adapted configuration: %w", err)
	}
	problems, err := f.apply(config)
	for _, p := range problems {
		warnings = append(warnings, caddyconfig.Warning{File: "command line", Directive: p.Field, Message: p.Message})
	}
	if err != nil {
		return nil, warnings, err
	}
	adapted, err = json.Marshal(config)
	return adapted, warnings, err
}

// apply changes a configuration as the flags say. It returns what has no effect.
func (f *flagged) apply(config map[string]any) ([]report.Problem, error) {
	options, err := optionsIn(config)
	if err != nil {
		return nil, err
	}
	s, problems := flags.Apply(options, f.given)
	var refused []error
	problems = slices.DeleteFunc(problems, func(p report.Problem) bool {
		if p.Severity == report.Error {
			refused = append(refused, fmt.Errorf("%s: %s", p.Field, p.Message))
		}
		return p.Severity == report.Error
	})
	if len(refused) > 0 {
		return problems, errors.Join(refused...)
	}
	if err := structure.CheckAddresses(s.Config); err != nil {
		return problems, err
	}
	within(config, "apps")["k8singress"] = structure.Tree(s.Config.WithoutDefaults())
	if s.Debug {
		within(config, "logging", "logs", "default")["level"] = "DEBUG"
	}
	return problems, structure.Merge(config, s.Config)
}

// within returns the object at a path of a configuration, and makes what is missing of it.
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

// optionsIn returns the options that a configuration has for the controller.
func optionsIn(config map[string]any) (options settings.Config, err error) {
	apps, _ := config["apps"].(map[string]any)
	raw, err := json.Marshal(apps["k8singress"])
	if err == nil {
		err = json.Unmarshal(raw, &options)
	}
	return options, err
}

// flag is one of ingress-nginx on the way from the command line to the table.
type flag struct {
	row   *flags.Row
	given map[string]string
}

func (f flag) String() string { return "" }

func (f flag) Set(value string) error {
	f.given[f.row.Name] = value
	return nil
}

func (f flag) Type() string {
	if flags.Boolean(f.row) {
		return "bool"
	}
	return "string"
}

func runCommand() *cobra.Command {
	given, config := map[string]string{}, ""
	cmd := &cobra.Command{
		Use:   "run [--config CADDYFILE] [FLAGS OF INGRESS-NGINX]",
		Short: "Runs the controller with the command line of ingress-nginx",
		Long: "Runs the controller with the command line of ingress-nginx, of which docs/flags.md says what each flag does. A Caddyfile is\n" +
			"for what ingress-nginx has no flag for; where both say something, the flag counts. Called by the name " + nginxName + ",\n" +
			"the program takes the flags without the words before them.",
		Args: cobra.NoArgs,
	}
	addFlags(cmd.Flags(), given)
	cmd.Flags().StringVarP(&config, "config", "c", os.DevNull, "Caddyfile with further options")
	showVersion := cmd.Flags().Bool("version", false, "prints the version, and ends")
	cmd.SetFlagErrorFunc(unknownFlag)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *showVersion {
			_, full := caddy.Version()
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "k8singress %s, with Caddy %s\n", ownVersion(), full)
			return err
		}
		cmd.SilenceUsage = true
		commandLine.given = given
		return runCaddy(cmd.Root(), config)
	}
	return cmd
}

// version is that of a release, which its build writes here. In every other program it is empty.
var version string

// ownModule is this module, among those that a program is made of.
const ownModule = "github.com/k8singress/k8singress"

// ownVersion is the version of this module in the program: as a release, as one of the plugins that xcaddy builds in, or of a checkout.
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

func addFlags(set *pflag.FlagSet, given map[string]string) {
	for i := range flags.Table {
		row := &flags.Table[i]
		short := ""
		if len(row.Name) == 1 {
			short = row.Name
		}
		added := set.VarPF(flag{row, given}, row.Name, short, row.Doc+row.Ignored)
		if flags.Boolean(row) {
			added.NoOptDefVal = "true"
		}
	}
}

// unknownFlag names the flag that was meant.
func unknownFlag(_ *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	name := strings.TrimLeft(unknown.GetSpecifiedName(), "-")
	return fmt.Errorf("there is no flag --%s%s", name, suggest.Hint(name, flags.Table.Names()))
}

// runCaddy is `caddy run` with the flags.
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
	logs.Logger("").Info("taking the command line of ingress-nginx", zap.Strings("flags", sortedNames(commandLine.given)))
	return run.RunE(run, nil)
}

func sortedNames(given map[string]string) []string {
	names := make([]string, 0, len(given))
	for name := range given {
		names = append(names, "--"+name)
	}
	slices.Sort(names)
	return names
}
