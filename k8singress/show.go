package k8singress

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// adminParts maps the arguments of the subcommand show to paths of the admin API.
var adminParts = map[string]string{
	"status": "/k8singress/status", "objects": "/k8singress/objects", "config": "/k8singress/config",
	"metrics": "/metrics",
}

// showCommand returns a subcommand that queries the admin API of a running controller. It is needed because an image
// with only the Caddy binary contains no other HTTP client, and tools outside the pod cannot reach a Unix socket in the
// pod.
func showCommand() *cobra.Command {
	words := slices.Sorted(maps.Keys(adminParts))
	var at adminAddress
	cmd := &cobra.Command{
		Use:   "show " + strings.Join(words, "|") + " [--config CADDYFILE [--adapter NAME]|--address ADDRESS]",
		Short: "Prints the status, objects, configuration or metrics of a running controller",
		Long: "Queries the admin API of a running controller, and prints its status, the verdict on each object,\n" +
			"the served configuration, or its metrics.\n" + whereAdminIs,
		Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: words,
	}
	at.addFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, arguments []string) error { return at.print(cmd, adminParts[arguments[0]]) }
	return cmd
}

// getCommand returns a subcommand that queries any path of the admin API, including paths of Caddy and of other
// modules.
func getCommand() *cobra.Command {
	var at adminAddress
	cmd := &cobra.Command{
		Use:   "get PATH [--config CADDYFILE [--adapter NAME]|--address ADDRESS]",
		Short: "Prints the response of the admin API for a path, such as /k8singress/status",
		Long: "Prints the response of the admin API for a path, such as /k8singress/status or /config/apps/http.\n" +
			"The exit status is 1 if the response is an error.\n" + whereAdminIs,
		Args: func(cmd *cobra.Command, arguments []string) error {
			if len(arguments) != 1 || !strings.HasPrefix(arguments[0], "/") {
				return fmt.Errorf("the argument must be one path that starts with a slash: %s /k8singress/status",
					cmd.CommandPath())
			}
			return nil
		},
	}
	at.addFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, arguments []string) error { return at.print(cmd, arguments[0]) }
	return cmd
}

// configInPods is the path of the default configuration file in the image. Commands in the pod use this file unless a
// flag names another one.
const configInPods = "/etc/caddy/Caddyfile"

const whereAdminIs = "The address of the API comes from the configuration file, by default " + configInPods + ".\n" +
	"Without a configuration file, it is $CADDY_ADMIN or localhost:2019."

// adminAddress holds the flags that determine the address of the admin API.
type adminAddress struct {
	config, adapter, address string
}

func (a *adminAddress) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&a.config, "config", "c", "", "Caddyfile or Caddy JSON with the address of the admin API")
	cmd.Flags().StringVarP(&a.adapter, "adapter", "a", "", "configuration adapter for the file, such as caddyfile")
	cmd.Flags().StringVar(&a.address, "address", "", "address of the admin API, such as unix//run/caddy/admin.sock")
}

// print sends a GET request for a path of the admin API, and prints the body of the response unchanged.
func (a *adminAddress) print(cmd *cobra.Command, path string) error {
	cmd.SilenceUsage = true
	config := a.config
	if _, err := os.Stat(configInPods); config == "" && err == nil {
		config = configInPods
	}
	at, err := caddycmd.DetermineAdminAPIAddress(a.address, nil, config, a.adapter)
	if err != nil {
		return fmt.Errorf("finding the address of the admin API: %w", err)
	}
	response, err := caddycmd.AdminAPIRequest(at, http.MethodGet, path, nil, nil)
	if err != nil {
		return fmt.Errorf("querying the admin API at %s: %w", at, err)
	}
	defer response.Body.Close()
	_, err = io.Copy(cmd.OutOrStdout(), response.Body)
	return err
}
