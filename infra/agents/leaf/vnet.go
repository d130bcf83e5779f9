package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"time"
)

// vnet tells of which ClusterLink fabric this host's cluster is a peer: both are named in the peer's certificate. One that is not valid
// now makes no peer.
func (l *leaf) vnet(k *look, now time.Time) {
	if l.o.VNet == "" {
		return
	}
	data, err := os.ReadFile(l.o.VNet)
	if err != nil {
		k.failed("vnet", err)
		return
	}
	block, _ := pem.Decode(data)
	if block == nil {
		k.failed("vnet", errors.New(l.o.VNet+" is no certificate"))
		return
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		k.failed("vnet", err)
		return
	}
	if now.Before(c.NotBefore) || now.After(c.NotAfter) {
		k.failed("vnet", errors.New("the certificate of "+c.Subject.CommonName+" is not valid now"))
		return
	}
	k.add("tlum_vnet_info", "The virtual network of the cluster", 1, labels{
		"type": "ClusterLink", "vnet_name": c.Issuer.CommonName, "vnet_node": c.Subject.CommonName,
	})
}
