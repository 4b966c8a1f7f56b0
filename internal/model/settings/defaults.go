package settings

import (
	"errors"
	"slices"
)

// Defaults returns the options that apply if nothing is configured.
func Defaults() Config {
	return Config{
		IngressClass:   DefaultIngressClass,
		ControllerName: DefaultControllerName,
		HTTP:           []string{DefaultHTTP},
		HTTPS:          []string{DefaultHTTPS},
		ElectionID:     DefaultElectionID,
		HostOwnership:  HostOwnershipShared,

		ShutdownTimeout: DefaultShutdownTimeout,
	}
}

// WithDefaults returns the options with defaults in place of zero values. ElectionNamespace is not set, because only
// the process knows its namespace.
func (c Config) WithDefaults() Config {
	d := Defaults()
	setDefault(&c.IngressClass, d.IngressClass)
	setDefault(&c.ControllerName, d.ControllerName)
	setDefault(&c.ElectionID, d.ElectionID)
	setDefault(&c.HostOwnership, d.HostOwnership)
	setDefault(&c.ShutdownTimeout, d.ShutdownTimeout)
	if c.HTTP == nil {
		c.HTTP = d.HTTP
	}
	if c.HTTPS == nil {
		c.HTTPS = d.HTTPS
	}
	return c
}

// Check returns an error if options contradict each other, or if an option is set without another option that it
// requires. It is called after the block of options is parsed, because the other option may follow, or come from the
// command line.
func (c Config) Check() error {
	if c.NginxMetrics.On() && (c.Health == "" || !c.HealthMetrics) {
		return errors.New("nginx_metrics needs the options health and health_metrics, which serve the metrics: add " +
			"health :10254 and health_metrics, or remove nginx_metrics")
	}
	if c.PublishPorts && c.PublishService.IsZero() {
		return errors.New("publish_ports needs publish_service, which names the Service that gets the ports: add " +
			"publish_service <namespace>/<name>, or remove publish_ports")
	}
	if err := c.checkDefaultChains(); err != nil {
		return err
	}
	if err := c.AdmissionWebhook.Check(); err != nil {
		return err
	}
	return c.checkReviewed()
}

// WithoutDefaults returns the options with zero values in place of defaults.
func (c Config) WithoutDefaults() Config {
	d := Defaults()
	dropDefault(&c.IngressClass, d.IngressClass)
	dropDefault(&c.ControllerName, d.ControllerName)
	dropDefault(&c.ElectionID, d.ElectionID)
	dropDefault(&c.HostOwnership, d.HostOwnership)
	dropDefault(&c.ShutdownTimeout, d.ShutdownTimeout)
	if slices.Equal(c.HTTP, d.HTTP) {
		c.HTTP = nil
	}
	if slices.Equal(c.HTTPS, d.HTTPS) {
		c.HTTPS = nil
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var none T
	if *field == none {
		*field = value
	}
}

func dropDefault[T comparable](field *T, value T) {
	var none T
	if *field == value {
		*field = none
	}
}
