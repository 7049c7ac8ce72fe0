"""Expands JSON-LD documents, one per line of standard input. The arguments are names of contexts and the files with them."""

import json
import sys

from pyld import jsonld

CONTEXTS = {name: json.load(open(path)) for name, path in zip(sys.argv[1::2], sys.argv[2::2])}


def load(name, options):
    return {"contentType": "application/ld+json", "contextUrl": None, "documentUrl": name, "document": CONTEXTS[name]}


for line in sys.stdin.readlines():
    print(json.dumps(jsonld.expand(json.loads(line), {"documentLoader": load, "processingMode": "json-ld-1.1"})))
