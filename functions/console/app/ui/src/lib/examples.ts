// Descriptors to begin with.
export const examples = [
  {
    name: "One component",
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
];
