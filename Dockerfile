# Builds the same image as `make image`, with Docker or Buildah. docs/build.md says when to use it.
#
#     make image && docker build .
FROM scratch
# The builder sets this to linux/amd64, linux/arm64 or linux/arm/v7.
ARG TARGETPLATFORM
# ADD extracts an archive, which keeps links, owners, and the binary's file capability. With this capability, the binary
# can listen on ports 80 and 443 without root.
ADD dist/root/${TARGETPLATFORM}.tar.gz /
ENV PATH=/usr/bin XDG_CONFIG_HOME=/data XDG_DATA_HOME=/data
WORKDIR /
EXPOSE 80 443 443/udp
USER 101
ENTRYPOINT ["/usr/bin/caddy"]
CMD ["run", "--config", "/etc/caddy/Caddyfile"]
