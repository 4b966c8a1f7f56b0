package k8singress

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/control/explain"
	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/lint"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "k8singress",
		Usage: "render|explain|lint|show|get|run",
		Short: "Checks and explains Kubernetes manifests offline, queries a running ingress controller, and runs one",
		Long: "Checks and explains Kubernetes manifests offline, queries a running controller, and runs one.\n" +
			"render, explain and lint read a folder of manifests or a single file, and need no cluster.",
		CobraFunc: commands,
	})
}

// offline holds the flags of the subcommands that read manifests from files instead of a cluster.
type offline struct {
	folder string
	config string
	// uses are the Services that the file config uses, although no Kubernetes object refers to them.
	uses []structure.Use
}

func commands(parent *cobra.Command) {
	// Without Args and RunE, an unknown subcommand would print the help and exit with status 0.
	parent.Args = cobra.NoArgs
	parent.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, c := range []struct {
		use, short, long string
		run              func(*offline, *cobra.Command, *engine.Offline) error
	}{
		{
			"render", "Prints the complete Caddy JSON for manifests",
			"Prints the complete Caddy JSON for manifests. Caddy can run it unless it refers to Secrets, whose\n" +
				"content is not included. Objects that cannot be served are left out, and listed on standard error.",
			(*offline).render,
		},
		{
			"explain", "Prints the filters and the backend of each path, and the backends of each port",
			"Prints, for each host and path of the manifests, the filters that process a request, in order and\n" +
				"with their settings, and the backend that gets it. The backends of TCP and UDP ports, and of the\n" +
				"Services that servers in the file of --config use, follow. docs/annotations.md lists the steps\n" +
				"that are the same for all requests.",
			(*offline).explain,
		},
		{
			"lint", "Checks manifests, and prints the problems of each object",
			"Prints the problems of each object, and \"ok\" for each Ingress without problems. The exit status is\n" +
				"1 if an object has an error, or if there are no manifests. A Service without endpoints is not an\n" +
				"error, because no pods run offline.",
			(*offline).lint,
		},
	} {
		var flags offline
		cmd := &cobra.Command{Use: c.use + " -f DIR|FILE [--config CADDYFILE]", Short: c.short, Long: c.long,
			Args: noArguments}
		cmd.Flags().StringVarP(&flags.folder, "filename", "f", "", "folder with manifests, or a single file")
		cmd.Flags().StringVarP(&flags.config, "config", "c", "",
			"Caddyfile or Caddy JSON with the options of the controller")
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return flags.run(cmd, c.run) }
		parent.AddCommand(cmd)
	}
	parent.AddCommand(showCommand(), getCommand(), runCommand())
}

// noArguments returns an error if the command line has positional arguments. The error message explains the flag -f,
// because such arguments often come from the shell, which expands -f *.yaml to several file names.
func noArguments(cmd *cobra.Command, arguments []string) error {
	switch {
	case len(arguments) == 0:
		return nil
	case cmd.Flags().Changed("filename"):
		return fmt.Errorf(
			"-f takes a single folder or file, but there is also %q: pass the folder that contains the files",
			arguments[0])
	}
	return fmt.Errorf("the folder must follow -f: %s -f %s", cmd.CommandPath(), arguments[0])
}

func (o *offline) run(cmd *cobra.Command, show func(*offline, *cobra.Command, *engine.Offline) error) error {
	switch o.folder {
	case "":
		return errors.New("no manifests are given: add -f DIR or -f FILE")
	case "-":
		return errors.New(
			"-f takes a folder or a file, and does not read standard input: write the manifests to a file")
	}
	// The command line is valid. Further errors are about the manifests, so the usage text would not help.
	cmd.SilenceUsage = true
	options, uses, err := optionsFrom(o.config)
	if err != nil {
		return err
	}
	o.uses = uses
	result, err := engine.RunOffline(o.folder, options, structure.Followed(uses)...)
	if err != nil {
		return err
	}
	return show(o, cmd, result)
}

// checkAnyObject returns an error if the manifests contain no object of a supported kind.
func (o *offline) checkAnyObject(s *snapshot.Snapshot) error {
	for _, n := range s.Counts() {
		if n > 0 {
			return nil
		}
	}
	var names []string
	for _, k := range kinds.All {
		if !k.NoManifest {
			names = append(names, k.Name)
		}
	}
	return fmt.Errorf(
		"%s has no manifests that the controller reads: it reads the kinds %s, in files with the extension "+
			".yaml, .yml or .json",
		o.folder, strings.Join(names, ", "))
}

// optionsFrom reads the options of the k8singress app from a Caddy configuration file, and finds the Services that the
// rest of the file uses. If file is empty, it returns the default options.
func optionsFrom(file string) (options settings.Config, uses []structure.Use, err error) {
	if file == "" {
		return options.WithDefaults(), nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return options, nil, fmt.Errorf("reading the configuration: %w", err)
	}
	if !json.Valid(data) {
		if data, _, err = caddyconfig.GetAdapter("caddyfile").Adapt(data, map[string]any{
			"filename": file, structure.CompleteOption: asWritten(file),
		}); err != nil {
			return options, nil, fmt.Errorf("reading the Caddyfile: %w", err)
		}
	}
	var config caddy.Config
	var whole map[string]any
	if err := cmp.Or(json.Unmarshal(data, &config), json.Unmarshal(data, &whole)); err != nil {
		return options, nil, fmt.Errorf("decoding the configuration: %w", err)
	}
	raw, ok := config.AppsRaw["k8singress"]
	if !ok {
		return options, nil, notConfigured(file)
	}
	var app App
	if err := caddy.StrictUnmarshalJSON(raw, &app); err != nil {
		return options, nil, fmt.Errorf("decoding the options: %w", err)
	}
	if options, err = app.settings(); err != nil {
		return options, nil, err
	}
	if uses, err = structure.Uses(whole); err != nil {
		return options, nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return options.WithDefaults(), uses, nil
}

// asWritten returns a structure.Complete that leaves the options in a Caddyfile unchanged. Options that need another
// option are accepted, because the Caddyfile may be for caddy k8singress run, which sets some of these others.
func asWritten(file string) structure.Complete {
	return func(c settings.Config, configured bool) (settings.Config, error) {
		if !configured {
			return c, notConfigured(file)
		}
		return c, nil
	}
}

func notConfigured(file string) error {
	return fmt.Errorf("%s does not configure k8singress: add the global option k8singress", file)
}

func (o *offline) render(cmd *cobra.Command, result *engine.Offline) error {
	if err := o.printErrors(cmd, result); err != nil {
		return err
	}
	encoder := json.NewEncoder(cmd.OutOrStdout())
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "\t")
	return encoder.Encode(engine.Compose(result.Settings, result.Document))
}

func (o *offline) explain(cmd *cobra.Command, result *engine.Offline) error {
	if err := o.printErrors(cmd, result); err != nil {
		return err
	}
	_, err := io.WriteString(cmd.OutOrStdout(), explain.Text(result.Document,
		explain.Used{Uses: o.uses, Backends: result.Followed}))
	return err
}

// printErrors writes to standard error which objects cannot be served. It returns an error if the manifests contain no
// object of a supported kind.
func (o *offline) printErrors(cmd *cobra.Command, result *engine.Offline) error {
	for _, v := range o.knownVerdicts(result.Report.Verdicts) {
		for _, p := range v.Problems {
			if p.Severity == report.Error {
				printProblem(cmd.ErrOrStderr(), v, p)
			}
		}
	}
	return o.checkAnyObject(result.Objects)
}

// knownVerdicts returns the verdicts, which contain the problems of each object. If no configuration file is given, the
// result does not contain problems that depend on the controller's options, because the options are unknown.
func (o *offline) knownVerdicts(verdicts []*report.Verdict) []*report.Verdict {
	if o.config == "" {
		return lint.WithoutOptions(verdicts)
	}
	return verdicts
}

// errLint makes the command exit with status 1. The problems themselves were already printed.
var errLint = errors.New("some objects have errors")

func (o *offline) lint(cmd *cobra.Command, result *engine.Offline) error {
	out, bad := cmd.OutOrStdout(), false
	var options *settings.Config
	if o.config != "" {
		options = &result.Settings
	}
	checked := result.Report.With(lint.UnopenedPorts(result.Objects,
		options)).With(lint.PathTypes(result.Objects, options,
		result.Report))
	verdicts := o.knownVerdicts(checked.Verdicts)
	for _, v := range verdicts {
		bad = bad || !v.Accepted()
		if len(v.Problems) == 0 {
			fmt.Fprintf(out, "%-8s %s\n", "ok", v.Object)
		}
		for _, p := range v.Problems {
			printProblem(out, v, p)
		}
	}
	if bad {
		return errLint
	}
	if err := o.checkAnyObject(result.Objects); err != nil {
		return err
	}
	if len(verdicts) == 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s has no Ingress, so nothing is served%s\n", o.folder, o.otherUses())
	}
	return nil
}

// otherUses returns a hint to set --config, because a Caddyfile can use Services without an Ingress. It returns nothing
// if --config is set.
func (o *offline) otherUses() string {
	if o.config != "" {
		return ""
	}
	return ". If a Caddyfile uses its Services, set --config to that file"
}

func printProblem(w io.Writer, v *report.Verdict, p report.Problem) {
	where := v.Object.String()
	if p.Field != "" {
		where += " " + p.Field
	}
	fmt.Fprintf(w, "%-8s %s: %s (%s)\n", p.Severity, where, p.Message, p.Reason)
}
