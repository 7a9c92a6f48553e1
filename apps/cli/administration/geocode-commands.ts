import { existsSync } from 'node:fs';
import { ProcessSession } from '#platform/database/process-session.js';
import { basename } from 'node:path';
import type { Command } from 'commander';
import { Pool } from 'pg';
import { ConfigError } from '#platform/kernel/config-error.js';
import { GeocodingQueue } from '#outbound/geocoding/geocoding-queue.service.js';
import { PostcodesImport } from '#outbound/geocoding/postcodes-import.service.js';
import { runProgram } from '../run-program.js';
import { withServices } from '../command-services.js';
import { readLines } from './zipped-text.js';

const SAID_EVERY_LINES = 100_000;

/** Commands that import postcodes and queue addresses for geocoding again. */
export function addGeocodeCommands(program: Command): void {
  program
    .command('geocode:import')
    .description(
      "postcodes for the offline geocoder, from one of GeoNames' files (txt or zip); replaces those of its countries",
    )
    .argument('<file>', 'such as DE.zip of https://download.geonames.org/export/zip/')
    .action((file: string) => {
      runProgram(async () => {
        if (!existsSync(file)) throw new ConfigError(`${file} does not exist`);
        const done = await withServices(async (app) => {
          const pool = app.get(Pool);
          let reportedCount = 0;
          const imported = await new PostcodesImport(pool).run(
            readLines(file),
            basename(file),
            (lines) => {
              if (lines - reportedCount < SAID_EVERY_LINES) return;
              reportedCount = lines;
              console.error(`${lines} postcodes …`);
            },
          );
          const queue = new GeocodingQueue(pool, app.get(ProcessSession));
          return { ...imported, asked_again: await queue.enqueueImprecise() };
        });
        console.log(JSON.stringify(done));
      });
    });

  program
    .command('geocode:again')
    .description(
      'looks up again every address that is not known to the street; use it after changing GEOCODER',
    )
    .action(() => {
      runProgram(async () => {
        const again = await withServices((app) =>
          new GeocodingQueue(app.get(Pool), app.get(ProcessSession)).enqueueImprecise(),
        );
        console.log(JSON.stringify({ asked_again: again }));
      });
    });
}
