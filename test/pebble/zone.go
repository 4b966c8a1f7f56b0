package main

import (
	"net/http"
	"slices"
	"sync"

	"github.com/miekg/dns"
)

// zone is a DNS zone for the DNS-01 challenge. Clients add and remove TXT records in it.
type zone struct {
	name string

	mu    sync.Mutex
	texts map[string][]string
}

// zoneName is the name of the only zone.
const zoneName = "dns.example."

func newZone() *zone {
	z := &zone{name: zoneName, texts: map[string][]string{}}
	// The server for all other names uses the same handlers.
	dns.HandleFunc(zoneName, z.answer)
	return z
}

func (z *zone) answer(w dns.ResponseWriter, r *dns.Msg) {
	m := new(dns.Msg).SetReply(r)
	for _, q := range r.Question {
		header := dns.RR_Header{Name: q.Name, Rrtype: q.Qtype, Class: dns.ClassINET}
		switch {
		case q.Qtype == dns.TypeSOA && q.Name == z.name:
			m.Answer = append(m.Answer, &dns.SOA{Hdr: header, Ns: "ns." + z.name, Mbox: "admin." + z.name, Serial: 1})
		case q.Qtype == dns.TypeTXT:
			z.mu.Lock()
			for _, text := range z.texts[q.Name] {
				m.Answer = append(m.Answer, &dns.TXT{Hdr: header, Txt: []string{text}})
			}
			z.mu.Unlock()
		}
	}
	_ = w.WriteMsg(m)
}

// add adds a record to the zone.
func (z *zone) add(_ http.ResponseWriter, r *http.Request) {
	z.mu.Lock()
	defer z.mu.Unlock()
	name := r.PathValue("name")
	z.texts[name] = append(z.texts[name], r.URL.Query().Get("value"))
}

// remove removes a record from the zone.
func (z *zone) remove(_ http.ResponseWriter, r *http.Request) {
	z.mu.Lock()
	defer z.mu.Unlock()
	name, value := r.PathValue("name"), r.URL.Query().Get("value")
	z.texts[name] = slices.DeleteFunc(z.texts[name], func(text string) bool { return text == value })
}
