# The monitor in a container. docs/container.md: building, running, the page, a microphone.
FROM python:3.11-slim

# Debian packages: libportaudio2 for a microphone. Recordings need none.
ARG DEBIAN=""
RUN if [ -n "$DEBIAN" ]; then \
        apt-get update && apt-get install -y --no-install-recommends $DEBIAN \
        && rm -rf /var/lib/apt/lists/*; \
    fi

# Extras: web is the page; web,tables,notify,mqtt are more.
ARG EXTRAS="web"
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY monitor monitor
RUN pip install --no-cache-dir --root-user-action=ignore ".[$EXTRAS]" && rm -r monitor

# A user without a name or a home owns nothing; what is kept for a while is kept in /tmp.
ENV HOME=/tmp MPLCONFIGDIR=/tmp/matplotlib
WORKDIR /recordings
RUN chmod 1777 .
VOLUME /recordings
USER 10001:10001
EXPOSE 8000
ENTRYPOINT ["monitor"]
CMD ["--help"]
