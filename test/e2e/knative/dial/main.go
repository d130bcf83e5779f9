// Command dial tries which addresses a pod may connect to.
//
//	dial ADDRESS...       prints "open ADDRESS" or "closed ADDRESS" for each, host:port
//	dial -listen PORTS    accepts connections on each port until it is ended
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// timeout is how long an address has to accept. A policy drops what it does not allow, so that nothing is heard of it.
const timeout = 3 * time.Second

func main() {
	ports := flag.String("listen", "", "ports, with commas between them")
	flag.Parse()
	if *ports == "" {
		try(flag.Args())
		return
	}
	if err := listen(strings.Split(*ports, ",")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// try connects to all addresses at once and prints what came of it, in their order.
func try(addresses []string) {
	open := make([]bool, len(addresses))
	var all sync.WaitGroup
	for i, address := range addresses {
		all.Go(func() {
			if c, err := net.DialTimeout("tcp", address, timeout); err == nil {
				open[i] = c.Close() == nil
			}
		})
	}
	all.Wait()
	for i, address := range addresses {
		if open[i] {
			fmt.Println("open", address)
		} else {
			fmt.Println("closed", address)
		}
	}
}

func listen(ports []string) error {
	for _, port := range ports {
		l, err := net.Listen("tcp", ":"+port)
		if err != nil {
			return err
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_ = c.Close()
			}
		}()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
	return nil
}
