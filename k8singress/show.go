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

// adminParts maps the arguments of the command show to paths of the admin API.
var adminParts = map[string]string{
	"status": "/k8singress/status", "objects": "/k8singress/objects", "config": "/k8singress/config",
	"metrics": "/metrics",
}

// showCommand returns the command that queries the admin API of a running controller. An image that contains only the
// binary has no other client, and tools outside the pod cannot reach a Unix socket in it.
func showCommand() *cobra.Command {
	words := slices.Sorted(maps.Keys(adminParts))
	var at adminAddress
	cmd := &cobra.Command{
		Use:   "show " + strings.Join(words, "|") + " [--config CADDYFILE|--address ADDRESS]",
		Short: "Prints what the admin API of a running controller says",
		Long: "Prints what the admin API of a running controller says: its status, the verdict on each object, all " +
			"that is served, or its\n" +
			"metrics. " + whereAdminIs,
		Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: words,
	}
	at.addFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, arguments []string) error { return at.print(cmd, adminParts[arguments[0]]) }
	return cmd
}

// getCommand is like showCommand for any path of the admin API, including paths of Caddy and other modules.
func getCommand() *cobra.Command {
	var at adminAddress
	cmd := &cobra.Command{
		Use:   "get PATH [--config CADDYFILE|--address ADDRESS]",
		Short: "Prints what the admin API answers for a path, such as /k8singress/status",
		Long: "Prints what the admin API answers for a path, such as /k8singress/status or /config/apps/http. An " +
			"answer that is an error\n" +
			"ends with status 1. " + whereAdminIs,
		Args: func(cmd *cobra.Command, arguments []string) error {
			if len(arguments) != 1 || !strings.HasPrefix(arguments[0], "/") {
				return fmt.Errorf("which path? It begins with a slash: %s /k8singress/status", cmd.CommandPath())
			}
			return nil
		},
	}
	at.addFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, arguments []string) error { return at.print(cmd, arguments[0]) }
	return cmd
}

// configInPods is the default configuration file of the image. Commands in the pod read it, so they need no flags.
const configInPods = "/etc/caddy/Caddyfile"

const whereAdminIs = "The API is at the address in the configuration file, which is " + configInPods + "\n" +
	"if there is one, or else at $CADDY_ADMIN or localhost:2019."

// adminAddress holds the flags that locate the admin API.
type adminAddress struct {
	config, address string
}

func (a *adminAddress) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&a.config, "config", "c", "", "Caddyfile or Caddy JSON that says where the admin API is")
	cmd.Flags().StringVar(&a.address, "address", "", "address of the admin API, such as unix//run/caddy/admin.sock")
}

// print requests a path and prints the response unchanged.
func (a *adminAddress) print(cmd *cobra.Command, path string) error {
	cmd.SilenceUsage = true
	config := a.config
	if _, err := os.Stat(configInPods); config == "" && err == nil {
		config = configInPods
	}
	at, err := caddycmd.DetermineAdminAPIAddress(a.address, nil, config, "")
	if err != nil {
		return fmt.Errorf("looking for the address of the admin API: %w", err)
	}
	response, err := caddycmd.AdminAPIRequest(at, http.MethodGet, path, nil, nil)
	if err != nil {
		return fmt.Errorf("asking the admin API at %s: %w", at, err)
	}
	defer response.Body.Close()
	_, err = io.Copy(cmd.OutOrStdout(), response.Body)
	return err
}
