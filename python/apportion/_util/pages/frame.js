addEventListener("message", ({ source, data }) => {
  for (const frame of document.querySelectorAll("iframe.apportion")) {
    if (frame.contentWindow === source && data?.height > 0) frame.style.height = `${Math.min(data.height, 5000)}px`;
  }
});
