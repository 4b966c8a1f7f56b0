package exchange

import (
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// cookieFlags is a compiled ir.CookieFlags. Either expression or name is set.
type cookieFlags struct {
	expression *pattern.Pattern
	name       *nginx.Template
	flags      []*nginx.Template
}

func (d *Directives) setCookieFlags(of *ir.Directives) (err error) {
	if of.CookieFlags != nil {
		d.cookieFlags = make([]cookieFlags, 0, len(of.CookieFlags))
	}
	for _, from := range of.CookieFlags {
		c := cookieFlags{}
		if expression, ok := strings.CutPrefix(from.Cookie, "~"); ok {
			c.expression, err = pattern.CompileFold(expression)
		} else {
			c.name, err = d.template(from.Cookie)
		}
		if err != nil {
			return err
		}
		for _, text := range from.Flags {
			flag, err := d.template(text)
			if err != nil {
				return err
			}
			c.flags = append(c.flags, flag)
		}
		d.cookieFlags = append(d.cookieFlags, c)
	}
	return nil
}

// FlagCookies changes the flags of the cookies in an endpoint's response. As in nginx, the flags of the last program
// that has any count, and for each cookie the first element that matches its name. A cookie is removed if matching it
// takes too long.
func (x *Exchange) FlagCookies(fields *message.Fields) {
	var all []cookieFlags
	for _, d := range x.forEndpoint {
		if d.cookieFlags != nil {
			all = d.cookieFlags
		}
	}
	if len(all) == 0 {
		return
	}
	budget, kept := pattern.NewBudget(), (*fields)[:0]
	for _, field := range *fields {
		if field.Kind == message.SetCookie {
			found, c := x.flagsFor(all, field.Value, &budget)
			if found == pattern.Unknown {
				continue
			}
			if found == pattern.Yes {
				field.Value = c.change(field.Value, x.Variable)
			}
		}
		kept = append(kept, field)
	}
	*fields = kept
}

// flagsFor returns the first element that matches the name of a cookie. As in nginx, no element matches a cookie
// without an equal sign.
func (x *Exchange) flagsFor(all []cookieFlags, cookie string, budget *pattern.Budget) (pattern.Found, *cookieFlags) {
	pair, _, _ := strings.Cut(cookie, ";")
	name, _, ok := strings.Cut(pair, "=")
	if !ok {
		return pattern.No, nil
	}
	name = strings.TrimSpace(name)
	for i := range all {
		c, found := &all[i], pattern.No
		if c.expression != nil {
			found = c.expression.Search(name, budget)
		} else if strings.EqualFold(name, c.name.Expand(x.Variable)) {
			found = pattern.Yes
		}
		if found != pattern.No {
			return found, c
		}
	}
	return pattern.No, nil
}

// flagChange is a change to an attribute of a cookie.
type flagChange struct{ word, name, attribute string }

// flagChanges are what the words in ir.CookieFlags.Flags do, in the order in which nginx adds attributes. An empty
// attribute removes the attributes with this name.
var flagChanges = []flagChange{
	{"nosecure", "Secure", ""}, {"secure", "Secure", "Secure"},
	{"nohttponly", "HttpOnly", ""}, {"httponly", "HttpOnly", "HttpOnly"},
	{"nosamesite", "SameSite", ""}, {"samesite=none", "SameSite", "SameSite=None"},
	{"samesite=lax", "SameSite", "SameSite=Lax"}, {"samesite=strict", "SameSite", "SameSite=Strict"},
}

// CookieFlagWords returns the values of ir.CookieFlags.Flags, except variables. Their case is ignored.
func CookieFlagWords() (all []string) {
	for _, change := range flagChanges {
		all = append(all, change.word)
	}
	return all
}

// CookieAttributes reads attributes for ir.ResponseRewrite, separated by semicolons. It accepts only the attributes
// that ir.CookieFlags can add.
func CookieAttributes(text string) (all string, err error) {
	for word := range strings.SplitSeq(text, ";") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		i := slices.IndexFunc(flagChanges, func(c flagChange) bool { return strings.EqualFold(c.attribute, word) })
		if i < 0 {
			return "", fmt.Errorf("the attribute %s cannot be added to cookies: write Secure, HttpOnly, "+
				"SameSite=None, SameSite=Lax or SameSite=Strict", nginx.Quote(word))
		}
		if next := "; " + flagChanges[i].attribute; !strings.Contains(all, next) {
			all += next
		}
	}
	return all, nil
}

// change returns the value of a Set-Cookie field with other flags. As in nginx, the value stays as it is if no flag is
// known.
func (c *cookieFlags) change(cookie string, variable func(string) string) string {
	parts := strings.Split(cookie, ";")
	for i, part := range parts {
		name, value, hasValue := strings.Cut(part, "=")
		if parts[i] = strings.TrimSpace(name); hasValue {
			parts[i] += "=" + strings.TrimSpace(value)
		}
	}
	words := make([]string, len(c.flags))
	for i, flag := range c.flags {
		words[i] = strings.ToLower(flag.Expand(variable))
	}
	changed := false
	for _, to := range flagChanges {
		if slices.Contains(words, to.word) {
			parts, changed = withAttribute(parts, to.name, to.attribute), true
		}
	}
	if !changed {
		return cookie
	}
	return strings.Join(parts, "; ")
}

// withAttribute replaces the attributes of a cookie that have this name. If there are no such attributes, it adds the
// new one. An empty attribute removes the old ones, and an attribute without a value keeps them. The first part is the
// name and the value of the cookie.
func withAttribute(parts []string, name, attribute string) []string {
	found, kept := false, parts[:1]
	for _, part := range parts[1:] {
		if old, _, _ := strings.Cut(part, "="); strings.EqualFold(old, name) {
			found = true
			if attribute == "" {
				continue
			}
			if attribute != name {
				part = attribute
			}
		}
		kept = append(kept, part)
	}
	if !found && attribute != "" {
		kept = append(kept, attribute)
	}
	return kept
}
