package snippets

import (
	"errors"
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/http/substitute"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// interpreter reads one directive of class Works.
type interpreter struct {
	read func(*reader, *Directive) error
	// once means that nginx refuses a second directive with this name in the same block.
	once bool
}

// interpreters maps directives of class Works to their interpreters, except if, location and limit_except, whose blocks
// contain other directives. The table of conversions has the directives that have the effect of an annotation.
var interpreters = map[string]interpreter{
	"set":     {read: (*reader).set},
	"return":  {read: (*reader).returnResponse},
	"rewrite": {read: (*reader).rewrite},
	"break":   {read: (*reader).breakSteps},

	"map":           {read: (*reader).defineMap},
	"geo":           {read: (*reader).defineGeo},
	"split_clients": {read: (*reader).defineSplit},

	"allow":            {read: (*reader).rule},
	"deny":             {read: (*reader).rule},
	"auth_basic":       {read: (*reader).authBasic},
	"auth_request_set": {read: (*reader).authVariable},

	"more_set_input_headers":   {read: (*reader).moreSetInput},
	"more_clear_input_headers": {read: (*reader).moreClearInput},
	"proxy_set_header":         {read: (*reader).setHeader},
	"grpc_set_header":          {read: (*reader).setHeader},

	"add_header":          {read: (*reader).addHeader},
	"more_set_headers":    {read: (*reader).moreSetHeaders},
	"more_clear_headers":  {read: (*reader).moreClearHeaders},
	"expires":             {read: (*reader).expires, once: true},
	"proxy_hide_header":   {read: (*reader).hide},
	"grpc_hide_header":    {read: (*reader).hide},
	"fastcgi_hide_header": {read: (*reader).hide},
	"proxy_pass_header":   {read: (*reader).pass},
	"grpc_pass_header":    {read: (*reader).pass},
	"fastcgi_pass_header": {read: (*reader).pass},
	"proxy_cookie_flags":  {read: (*reader).cookieFlags},

	"sub_filter":               {read: (*reader).subFilter},
	"sub_filter_once":          {read: (*reader).subFilterOnce, once: true},
	"sub_filter_types":         {read: (*reader).subFilterTypes},
	"sub_filter_last_modified": {read: (*reader).subFilterLastModified, once: true},
	"default_type":             {read: (*reader).defaultType, once: true},

	"error_page":               {read: (*reader).errorPage},
	"recursive_error_pages":    {read: (*reader).recursiveErrorPages, once: true},
	"proxy_intercept_errors":   {read: (*reader).interceptErrors, once: true},
	"grpc_intercept_errors":    {read: (*reader).interceptErrors, once: true},
	"fastcgi_intercept_errors": {read: (*reader).interceptErrors, once: true},

	"limit_req_zone":     {read: (*reader).requestZone},
	"limit_conn_zone":    {read: (*reader).connectionZone},
	"limit_req":          {read: (*reader).limit},
	"limit_conn":         {read: (*reader).limit},
	"limit_req_status":   {read: (*reader).limitStatus, once: true},
	"limit_conn_status":  {read: (*reader).limitStatus, once: true},
	"limit_req_dry_run":  {read: (*reader).limitDryRun, once: true},
	"limit_conn_dry_run": {read: (*reader).limitDryRun, once: true},

	"server":      {read: (*reader).listeningServer},
	"listen":      {read: (*reader).listen},
	"server_name": {read: (*reader).serverName},
	"stub_status": {read: (*reader).stubStatus},

	"internal":   {read: (*reader).internal},
	"try_files":  {read: (*reader).tryFiles, once: true},
	"proxy_pass": {read: (*reader).proxyPass, once: true},

	"access_log": {read: (*reader).accessLog},

	"client_header_buffer_size":   {read: (*reader).headSize, once: true},
	"large_client_header_buffers": {read: (*reader).headSize, once: true},

	SetRealIPFrom:   {read: (*reader).readRealIP},
	RealIPHeader:    {read: (*reader).readRealIP, once: true},
	RealIPRecursive: {read: (*reader).readRealIP, once: true},
}

// authVariable interprets auth_request_set.
func (r *reader) authVariable(d *Directive) error {
	name, err := variableName(d.Args[0])
	if err != nil {
		return err
	}
	if err := r.checkTemplate(&d.Args[1]); err != nil {
		return err
	}
	own := &r.scope.own
	own.AuthVariables = append(own.AuthVariables, ir.SetVariable{Name: name, Value: d.Args[1]})
	return r.countHeaders(1)
}

// subFilter interprets sub_filter.
func (r *reader) subFilter(d *Directive) error {
	switch to := &r.substitution; {
	case d.Args[0] == "":
		return errors.New("the text to replace is empty: write the text to search for")
	case len(to.Pairs) == substitute.MaxTexts:
		return fmt.Errorf("there are more than %d texts to replace: remove some of them", substitute.MaxTexts)
	}
	for i := range d.Args {
		if err := r.checkTemplate(&d.Args[i]); err != nil {
			return err
		}
	}
	to := &r.substitution
	to.Pairs = append(to.Pairs, ir.Replacement{From: d.Args[0], To: d.Args[1]})
	return r.countHeaders(1)
}

func (r *reader) subFilterOnce(d *Directive) error {
	r.substitution.Repeat = !isOn(d)
	return nil
}

func (r *reader) subFilterLastModified(d *Directive) error {
	r.substitution.KeepLastModified = isOn(d)
	return nil
}

func (r *reader) subFilterTypes(d *Directive) error {
	r.substitution.Types = append(r.substitution.Types, d.Args...)
	return nil
}

// isOn returns the value of a flag. As in nginx, case is ignored.
func isOn(d *Directive) bool { return strings.EqualFold(d.Args[0], "on") }
