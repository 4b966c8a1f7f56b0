package k8singress

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// adminParts are the parts of the admin API that the command show prints.
var adminParts = map[string]string{
	"status": "/k8singress/status", "objects": "/k8singress/objects", "config": "/k8singress/config", "metrics": "/metrics",
}

// showCommand asks the admin API of a running controller. An image with nothing but the binary has no other client for it, and no tool
// outside the pod reaches a socket there.
func showCommand() *cobra.Command {
	words := slices.Sorted(maps.Keys(adminParts))
	var config, address string
	cmd := &cobra.Command{
		Use:   "show " + strings.Join(words, "|") + " [--config CADDYFILE|--address ADDRESS]",
		Short: "Prints what the admin API of a running controller says",
		Long: "Prints what the admin API of a running controller says: its status, the verdict on each object, all that is served, or its\n" +
			"metrics. The API is at the address in the configuration file, or at localhost:2019.",
		Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: words,
	}
	cmd.Flags().StringVarP(&config, "config", "c", "", "Caddyfile or Caddy JSON that says where the admin API is")
	cmd.Flags().StringVar(&address, "address", "", "address of the admin API, such as unix//run/caddy/admin.sock")
	cmd.RunE = func(cmd *cobra.Command, arguments []string) error {
		cmd.SilenceUsage = true
		at, err := caddycmd.DetermineAdminAPIAddress(address, nil, config, "")
		if err != nil {
			return fmt.Errorf("looking for the address of the admin API: %w", err)
		}
		response, err := caddycmd.AdminAPIRequest(at, http.MethodGet, adminParts[arguments[0]], nil, nil)
		if err != nil {
			return fmt.Errorf("asking the admin API at %s: %w", at, err)
		}
		defer response.Body.Close()
		_, err = io.Copy(cmd.OutOrStdout(), response.Body)
		return err
	}
	return cmd
}
