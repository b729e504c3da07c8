# The coordinator in a container: one static program, a user without rights, one volume. Agents don't run in here: workers
# run where the agents' programs and folders are (stint worker run, signed in by stint login). See docs/container.md.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -gcflags=stint/web=-l -ldflags '-s -w' -o /out/bin/stint ./cmd/stint \
	&& mkdir -p /out/data /out/tmp /out/etc/ssl/certs \
	&& cp /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ \
	&& cp LICENSE NOTICE /out/ \
	&& chmod 0700 /out/data \
	&& chmod 1777 /out/tmp

FROM scratch
COPY --from=build --chown=65532:65532 /out/ /
USER 65532:65532
ENV HOME=/data STINT_DATA_DIR=/data/stint STINT_ADDR=0.0.0.0:7717
VOLUME /data
EXPOSE 7717
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["/bin/stint", "status", "-q"]
ENTRYPOINT ["/bin/stint"]
CMD ["serve"]
