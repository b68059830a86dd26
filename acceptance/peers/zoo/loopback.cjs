// Loaded before a published server: no name but `localhost` is found, so nothing leaves the machine
// and a failure is the same with a network and without one.
const dns = require("node:dns");
const { syncBuiltinESMExports } = require("node:module");
const { isIP } = require("node:net");

const lookup = dns.lookup;
dns.lookup = (hostname, options, callback) => {
  if (hostname === "localhost" || isIP(hostname)) return lookup(hostname, options, callback);
  const error = Object.assign(new Error(`getaddrinfo ENOTFOUND ${hostname}`), {
    code: "ENOTFOUND", errno: -3008, hostname, syscall: "getaddrinfo",
  });
  process.nextTick(typeof options === "function" ? options : callback, error);
};
syncBuiltinESMExports();
