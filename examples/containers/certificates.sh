#!/bin/sh
# Makes the certificates of compose.yaml: certificates.sh HOST. The authority lies in /authority; the server and
# the program each get a folder with what is theirs. Certificates that are there already are kept.
set -eu
[ -f /authority/certs/ca.pem ] || heddle cert ca /authority/certs
[ -f "/authority/certs/server-$1.pem" ] || heddle cert server /authority/certs --host "$1"
[ -f /authority/certs/client-app.pem ] || heddle cert client /authority/certs --name app
cd /authority/certs
install -o 10001 -m 0400 ca.pem "server-$1.pem" "server-$1.key" /server
install -o 10001 -m 0400 ca.pem client-app.pem client-app.key /app-certs
