type Component = {
  name: string;
  version: string;
  licenses?: { expression?: string; license?: { id?: string; name?: string } }[];
};

export function listLicences(document: {
  components: Component[];
}): { line: string; allowed: boolean }[];
