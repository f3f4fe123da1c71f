export default ({ output }) => ({ pass: output.split(/\s+/).length > 3 });
