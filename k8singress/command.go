package k8singress

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/k8singress/k8singress/internal/engine"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/settings"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:      "k8singress",
		Usage:     "render|lint -f DIR [--config FILE]",
		Short:     "Shows what the ingress controller makes of a folder of manifests",
		Long:      "Shows what the ingress controller makes of a folder of Kubernetes manifests, without a cluster.",
		CobraFunc: commands,
	})
}

// offline are the flags that both subcommands have.
type offline struct {
	folder string
	config string
}

func commands(parent *cobra.Command) {
	// Without these, a misspelt subcommand would print the help and end with status 0.
	parent.Args = cobra.NoArgs
	parent.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, c := range []struct {
		use, short, long string
		run              func(*cobra.Command, *engine.Offline) error
	}{
		{
			"render", "Prints the whole Caddy JSON for a folder of manifests",
			"Prints the whole Caddy JSON that the manifests become. Caddy runs it as it is, where no Secret is needed. What is\n" +
				"left out because it cannot be served is listed on standard error.",
			render,
		},
		{
			"lint", "Prints what the controller says of each object in a folder of manifests",
			"Prints what the controller says of each object, and ends with status 1 if one of them asks for something that\n" +
				"cannot be served. A Service without endpoints is no error: offline, nothing runs.",
			lint,
		},
	} {
		var flags offline
		cmd := &cobra.Command{Use: c.use + " -f DIR [--config FILE]", Short: c.short, Long: c.long, Args: cobra.NoArgs}
		cmd.Flags().StringVarP(&flags.folder, "filename", "f", "", "folder of manifests")
		cmd.Flags().StringVarP(&flags.config, "config", "c", "", "Caddyfile or Caddy JSON with the options of the controller")
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return flags.run(cmd, c.run) }
		parent.AddCommand(cmd)
	}
}

func (o *offline) run(cmd *cobra.Command, show func(*cobra.Command, *engine.Offline) error) error {
	if o.folder == "" {
		return errors.New("which folder? -f DIR is needed")
	}
	// From here on an error is about the manifests, and how to call the command is of no interest.
	cmd.SilenceUsage = true
	options, err := optionsFrom(o.config)
	if err != nil {
		return err
	}
	result, err := engine.RunOffline(o.folder, options)
	if err != nil {
		return err
	}
	return show(cmd, result)
}

// optionsFrom reads the options of the app from a configuration file; without a file they are the defaults.
func optionsFrom(file string) (settings.Config, error) {
	var app App
	if file == "" {
		return app.WithDefaults(), nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return app.Config, fmt.Errorf("reading the configuration: %w", err)
	}
	if !json.Valid(data) {
		if data, _, err = caddyconfig.GetAdapter("caddyfile").Adapt(data, map[string]any{"filename": file}); err != nil {
			return app.Config, fmt.Errorf("reading the Caddyfile: %w", err)
		}
	}
	var config caddy.Config
	if err := json.Unmarshal(data, &config); err != nil {
		return app.Config, fmt.Errorf("decoding the configuration: %w", err)
	}
	raw, ok := config.AppsRaw["k8singress"]
	if !ok {
		return app.Config, fmt.Errorf("%s has no k8singress option", file)
	}
	if err := caddy.StrictUnmarshalJSON(raw, &app); err != nil {
		return app.Config, fmt.Errorf("decoding the options: %w", err)
	}
	return app.WithDefaults(), nil
}

func render(cmd *cobra.Command, result *engine.Offline) error {
	for _, v := range result.Report.Verdicts {
		for _, p := range v.Problems {
			if p.Severity == report.Error {
				printProblem(cmd.ErrOrStderr(), v, p)
			}
		}
	}
	encoder := json.NewEncoder(cmd.OutOrStdout())
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "\t")
	return encoder.Encode(engine.Compose(result.Settings, result.Document))
}

// errLint has no more to say than what was printed.
var errLint = errors.New("some objects cannot be served as they are")

func lint(cmd *cobra.Command, result *engine.Offline) error {
	out, bad := cmd.OutOrStdout(), false
	for _, v := range result.Report.Verdicts {
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
	return nil
}

func printProblem(w io.Writer, v *report.Verdict, p report.Problem) {
	where := v.Object.String()
	if p.Field != "" {
		where += " " + p.Field
	}
	fmt.Fprintf(w, "%-8s %s: %s (%s)\n", p.Severity, where, p.Message, p.Reason)
}
