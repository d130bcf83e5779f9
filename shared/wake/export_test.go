package wake

var NamespaceIn = namespaceIn
