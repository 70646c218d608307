// Opens pages in a browser, each in several ways, and prints as JSON what axe-core finds, and how wide they are.
// node check.mjs WHERE_THE_PACKAGES_ARE BROWSER PROFILE PAGE...
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [place, executablePath, userDataDir, ...pages] = process.argv.slice(2);
const require = createRequire(pathToFileURL(join(place, "package.json")));
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const views = [
  { name: "light", width: 1280, scheme: "light" },
  { name: "dark", width: 1280, scheme: "dark" },
  { name: "narrow", width: 400, scheme: "light" },
  // The text of a sheet of A4; of it only the width is looked at.
  { name: "print", width: 690, scheme: "light", media: "print" },
];
const browser = await puppeteer.launch({
  executablePath,
  userDataDir,
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
});
const found = [];
for (const path of pages) {
  const page = await browser.newPage();
  // The pages forbid every script; axe-core is one.
  await page.setBypassCSP(true);
  for (const { name, width, scheme, media } of views) {
    await page.setViewport({ width, height: 900 });
    await page.emulateMediaType(media);
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.goto(pathToFileURL(path).href);
    await page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
    if (!media) await page.evaluate(axe);
    const violations = media ? [] : await page.evaluate(async () => {
      const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
      const { violations } = await axe.run(document, { runOnly: tags, resultTypes: ["violations"] });
      return violations.map(({ id, help, nodes }) => ({ id, help, nodes: nodes.map((node) => node.html.slice(0, 200)) }));
    });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    found.push({ page: path, view: name, violations, wide });
  }
  await page.close();
}
await browser.close();
console.log(JSON.stringify(found));
