// Descriptors to begin with.
export const examples = [
  {
    name: "Component: one container",
    yaml: `name: web
description: a web page
components:
  - name: web
    type: kubernetes
    requirements:
      cpu: 250m
      memory: 128Mi
    manifests:
      - name: web
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata:
            name: web
          spec:
            replicas: 1
            selector:
              matchLabels: {app: web}
            template:
              metadata:
                labels: {app: web}
              spec:
                containers:
                  - name: web
                    image: example/web:1.0
`,
  },
  {
    name: "Two that talk, secure, and moved when silent",
    yaml: `name: shop
description: a page and its store, close to each other
components:
  - name: page
    type: kubernetes
    requirements: {cpu: 500m, memory: 128Mi, architecture: x86_64}
    communication:
      - incoming: store
    policies:
      - redeployOnLostTelemetry: 30s
    manifests:
      - name: page
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: page}
          spec:
            replicas: 1
            selector: {matchLabels: {app: page}}
            template:
              metadata: {labels: {app: page}}
              spec:
                containers:
                  - {name: page, image: "example/page:1.0"}
  - name: store
    type: kubernetes
    requirements: {cpu: 250m, memory: 256Mi}
    communication:
      - outgoing: store
    manifests:
      - name: store
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: store}
          spec:
            replicas: 1
            selector: {matchLabels: {app: store}}
            template:
              metadata: {labels: {app: store}}
              spec:
                containers:
                  - {name: store, image: "example/store:1.0"}
      - name: store-service
        manifest:
          apiVersion: v1
          kind: Service
          metadata: {name: store}
          spec:
            selector: {app: store}
            ports: [{port: 80}]
policies:
  - name: what matters
    type: scheduler
    performance: 0.4
    energy: 0.2
    security: 0.4
  - security: high
`,
  },
  {
    name: "Component: a compose file, for nodes with Docker",
    yaml: `name: gateway
components:
  - name: gateway
    type: docker
    manifests:
      - name: gateway
        manifest:
          services:
            gateway:
              image: example/gateway:1.0
              deploy: {resources: {reservations: {cpus: "0.25", memory: 64M}}}
`,
  },
  {
    name: "Component: for Kubernetes or Docker, whichever suits",
    yaml: `name: reader
components:
  - name: reader
    type: multiple
    requirements: {cpu: 250m, memory: 64Mi}
    manifests:
      - name: reader
        manifest:
          apiVersion: v1
          kind: Pod
          metadata: {name: reader}
          spec: {containers: [{name: reader, image: "example/reader:1.0"}]}
      - name: reader-compose
        manifest:
          services:
            reader: {image: "example/reader:1.0"}
`,
  },
  {
    name: "Component: objects in documents of their own",
    yaml: `name: page
components:
  - name: page
    type: kubernetes
    requirements: {cpu: 250m, memory: 64Mi}
    manifests:
      - name: page
---
apiVersion: v1
kind: Pod
metadata: {name: page}
spec: {containers: [{name: page, image: "example/page:1.0"}]}
`,
  },
  {
    name: "Component: fixed to a node",
    yaml: `name: local
components:
  - name: local
    type: kubernetes
    requirements: {cpu: 250m, memory: 128Mi}
    targets:
      - {cluster_name: edge, node_name: edge-1}
    manifests:
      - name: local
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: local}
          spec:
            replicas: 1
            selector: {matchLabels: {app: local}}
            template:
              metadata: {labels: {app: local}}
              spec:
                containers:
                  - {name: local, image: "example/local:1.0"}
`,
  },
  {
    name: "Component: needs a device, an architecture and a label",
    yaml: `name: eye
components:
  - name: eye
    type: kubernetes
    requirements: 
      cpu: 250m
      memory: 128Mi
      architecture: arm64
      devices: squat.ai/video
      # one replica on each node with one of the values:
      # nodelabel: {key: zone, values: [north, south]}
    manifests:
      - name: eye
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: eye}
          spec:
            replicas: 1
            selector: {matchLabels: {app: eye}}
            template:
              metadata: {labels: {app: eye}}
              spec:
                containers:
                  - {name: eye, image: "example/eye:1.0"}
`,
  },
  {
    name: "Component: scaled between bounds",
    yaml: `name: crowd
components:
  - name: crowd
    type: kubernetes
    requirements: {cpu: 250m, memory: 128Mi}
    scaling: {minReplicas: 1, maxReplicas: 4, step: 1}
    manifests:
      - name: crowd
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: crowd}
          spec:
            replicas: 1
            selector: {matchLabels: {app: crowd}}
            template:
              metadata: {labels: {app: crowd}}
              spec:
                containers:
                  - {name: crowd, image: "example/crowd:1.0"}
`,
  },
  {
    name: "Policy: security",
    yaml: `name: safe
components:
  - name: safe
    type: kubernetes
    requirements: {cpu: 250m, memory: 128Mi}
    policies:
      - security: high
    manifests:
      - name: safe
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: safe}
          spec:
            replicas: 1
            selector: {matchLabels: {app: safe}}
            template:
              metadata: {labels: {app: safe}}
              spec:
                containers:
                  - {name: safe, image: "example/safe:1.0"}
`,
  },
  {
    name: "Policy: how busy the node may be",
    yaml: `name: quiet
components:
  - name: quiet
    type: kubernetes
    requirements: {cpu: 250m, memory: 128Mi}
    policies:
      - type: nodeResourceUsage
        cpu_threshold_perc: 0.8
        memory_threshold_perc: 0.8
        remediation: redeploy
    manifests:
      - name: quiet
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: quiet}
          spec:
            replicas: 1
            selector: {matchLabels: {app: quiet}}
            template:
              metadata: {labels: {app: quiet}}
              spec:
                containers:
                  - {name: quiet, image: "example/quiet:1.0"}
`,
  },
  {
    name: "Policy: moved when its node is silent",
    yaml: `name: heard
components:
  - name: heard
    type: kubernetes
    requirements: {cpu: 250m, memory: 128Mi}
    policies:
      - redeployOnLostTelemetry: 1m
    manifests:
      - name: heard
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: heard}
          spec:
            replicas: 1
            selector: {matchLabels: {app: heard}}
            template:
              metadata: {labels: {app: heard}}
              spec:
                containers:
                  - {name: heard, image: "example/heard:1.0"}
`,
  },
  {
    name: "Policy: what matters when placing",
    yaml: `name: green
components:
  - name: green
    type: kubernetes
    requirements: {cpu: 250m, memory: 128Mi}
    manifests:
      - name: green
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: green}
          spec:
            replicas: 1
            selector: {matchLabels: {app: green}}
            template:
              metadata: {labels: {app: green}}
              spec:
                containers:
                  - {name: green, image: "example/green:1.0"}
policies:
  - name: what matters
    type: scheduler
    performance: 0.1
    energy: 0.8
    security: 0.1
`,
  },
  {
    name: "Policy: from a template",
    yaml: `name: scored
components:
  - name: scored
    type: kubernetes
    requirements: {cpu: 250m, memory: 128Mi}
    policies:
      - name: score
        type: custom
        fromTemplate: app-sca-score
        variables: {threshold: 60}
        remediation: redeploy
    manifests:
      - name: scored
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: scored}
          spec:
            replicas: 1
            selector: {matchLabels: {app: scored}}
            template:
              metadata: {labels: {app: scored}}
              spec:
                containers:
                  - {name: scored, image: "example/scored:1.0"}
`,
  },
  {
    name: "Policy: an expression of your own",
    yaml: `name: queue
components:
  - name: queue
    type: kubernetes
    requirements: {cpu: 250m, memory: 128Mi}
    policies:
      - name: queue
        type: custom
        spec: {expr: "sum(jobs_waiting)", violatedIf: "> 100"}
        remediation: scale-out
    manifests:
      - name: queue
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: queue}
          spec:
            replicas: 1
            selector: {matchLabels: {app: queue}}
            template:
              metadata: {labels: {app: queue}}
              spec:
                containers:
                  - {name: queue, image: "example/queue:1.0"}
`,
  },
];
