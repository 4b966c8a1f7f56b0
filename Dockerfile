# The image as `make image` builds it, for those who build with Docker or Buildah. docs/build.md says when that is of use.
#
#     make image && docker build .
FROM scratch
# linux/amd64, linux/arm64 or linux/arm/v7, which the builder sets.
ARG TARGETPLATFORM
# An archive, because it has the links, the owners, and the capability of the program that lets it listen on 80 and 443 without root.
ADD dist/root/${TARGETPLATFORM}.tar.gz /
ENV PATH=/usr/bin XDG_CONFIG_HOME=/data XDG_DATA_HOME=/data
WORKDIR /
EXPOSE 80 443 443/udp
USER 101
ENTRYPOINT ["/usr/bin/caddy"]
CMD ["run", "--config", "/etc/caddy/Caddyfile"]
